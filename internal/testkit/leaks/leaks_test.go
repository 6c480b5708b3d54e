package leaks

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

// A goroutine that ends, however late, is no leak. One that stays is, when there is no patience left.
func TestAGoroutineThatStaysIsFound(t *testing.T) {
	others := goleak.IgnoreCurrent()
	late := make(chan struct{})
	go func() { <-late }()
	time.AfterFunc(time.Second, func() { close(late) })
	if err := find(patience, others); err != nil {
		t.Errorf("one that ends within a second: got %v", err)
	}
	stays := make(chan struct{})
	defer close(stays)
	go func() { <-stays }()
	if err := find(0, others); err == nil {
		t.Error("one that stays: got no error")
	}
}
