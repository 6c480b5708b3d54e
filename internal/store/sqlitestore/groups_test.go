package sqlitestore_test

import "testing"

// However many writes wait, one transaction takes 1,024 of them at most, and the next the others.
func TestATransactionTakesNoMoreWritesThanTheLimit(t *testing.T) {
	s, _ := openFile(t)
	var writes []func() error
	for i := range 1100 {
		writes = append(writes, func() error { return s.Create(t.Context(), benchJob(i)) })
	}
	before := s.Stats()
	for i, err := range together(t, s, writes...) {
		if err != nil {
			t.Errorf("create %d: %v", i, err)
		}
	}
	same(t, "transactions", since(s, before).Groups, int64(2))
}
