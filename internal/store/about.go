package store

import "fmt"

// About returns an error that says what was being done, in front of err; nil for nil.
func About(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), err)
}
