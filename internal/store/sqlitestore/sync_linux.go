package sqlitestore

import (
	"errors"
	"os"
	"syscall"
)

// syncFile makes the writes to f durable. It is fdatasync, which skips the file's times: once the log has reached its
// size, flushing it writes only the log.
func syncFile(f *os.File) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		for {
			failed = syscall.Fdatasync(int(fd))
			if !errors.Is(failed, syscall.EINTR) {
				return
			}
		}
	})
	return errors.Join(err, failed)
}
