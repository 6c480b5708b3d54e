//go:build !linux

package sqlitestore

import "os"

// syncFile makes the writes to f durable.
func syncFile(f *os.File) error { return f.Sync() }
