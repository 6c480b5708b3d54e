package seed

import (
	"testing"

	"pgregory.net/rapid"
)

func TestATestHasOneSeedUnlessAskedForAnother(t *testing.T) {
	first, err := of("TestA", "")
	if err != nil || first == 0 {
		t.Fatalf("got %d, %v", first, err)
	}
	if again, _ := of("TestA", ""); again != first {
		t.Errorf("got %d, and then %d", first, again)
	}
	if other, _ := of("TestB", ""); other == first {
		t.Errorf("two tests have the seed %d", first)
	}
	if one, _ := of("TestA", "17"); one != 17 {
		t.Errorf("asked for 17, got %d", one)
	}
	one, _ := of("TestA", "random")
	if two, _ := of("TestA", "random"); one == two {
		t.Errorf("asked twice for a random one, got %d", one)
	}
}

func TestAWrongSeedIsRefused(t *testing.T) {
	for _, asked := range []string{"0", "-1", "some", "18446744073709551616"} {
		if _, err := of("TestA", asked); err == nil {
			t.Errorf("%q: got no error", asked)
		}
	}
}

// The drawing of a property is the same each time.
func TestAPropertyIsCheckedWithTheSeedOfItsTest(t *testing.T) {
	draw := func() (drawn []uint64) {
		Check(t, func(t *rapid.T) { drawn = append(drawn, rapid.Uint64().Draw(t, "number")) })
		return drawn
	}
	first, again := draw(), draw()
	if len(first) == 0 || len(first) != len(again) {
		t.Fatalf("drew %d, and then %d", len(first), len(again))
	}
	for i := range first {
		if first[i] != again[i] {
			t.Fatalf("draw %d is %d, and then %d", i, first[i], again[i])
		}
	}
}
