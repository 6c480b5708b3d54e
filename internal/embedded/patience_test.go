package embedded_test

import "time"

// usualPatience is how long a world waits: 20 seconds in a bubble, where no machine is slow. A real clock goes on while a
// busy machine does other things.
func usualPatience() time.Duration {
	if bubble := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC); time.Since(bubble) < 20*365*24*time.Hour {
		return 20 * time.Second
	}
	return 2 * time.Minute
}
