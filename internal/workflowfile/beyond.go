package workflowfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/makegood-dev/makegood/internal/limits"
)

// beyond says which of what is read lies inside of a large payload, where no expression comes: it would be null, and nobody
// would know why. The reference itself may be passed on, and its own members be read. Nil: nothing does. What an expression
// computes, and does not name, is not followed.
func (b *branch) beyond(value json.RawMessage, path string) error {
	if b.all || b.members == nil || !bytes.Contains(value, []byte(limits.PayloadMark)) && !bytes.Contains(value, []byte(`\u`)) {
		return nil
	}
	var decoded any
	if err := json.Unmarshal(value, &decoded); err != nil {
		return nil // Whoever decodes it for the expression says so.
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
