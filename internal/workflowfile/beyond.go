package workflowfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/makegood-dev/makegood/internal/limits"
)

// beyond returns an error if a read path lies inside a large payload: the expression would silently yield null there.
// The reference itself may be passed on, and its own members may be read. Nil: no path does. Computed paths are not
// followed.
func (b *branch) beyond(value json.RawMessage, path string) error {
	if b.all || b.members == nil || !bytes.Contains(value, []byte(limits.PayloadMark)) && !bytes.Contains(value, []byte(`\u`)) {
		return nil
	}
	var decoded any
	if err := json.Unmarshal(value, &decoded); err != nil {
		return nil // The decoding for the expression reports the error.
	}
	return b.beyondDecoded(decoded, path)
}

func (b *branch) beyondDecoded(value any, path string) error {
	object, is := value.(map[string]any)
	if !is || b.all {
		return nil
	}
	_, isPayload := object[limits.PayloadMark]
	for _, name := range slices.Sorted(maps.Keys(b.members)) {
		if isPayload && name != limits.PayloadMark {
			return fmt.Errorf("%s.%s lies inside of a large payload, which expressions do not read: pass %s on as a whole, or have the step that wrote it give %s in its output, too", path, name, path, name)
		}
		if err := b.members[name].beyondDecoded(object[name], path+"."+name); err != nil {
			return err
		}
	}
	return nil
}
