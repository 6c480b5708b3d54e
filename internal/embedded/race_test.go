//go:build race

package embedded_test

const raced = true

// hoursOf is how many of so many hours of virtual time are played: under the race detector each takes ten times as long.
func hoursOf(int) int { return 1 }
