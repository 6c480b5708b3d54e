package dynamostore

import (
	"errors"
	"fmt"
	"strings"
)

// format is the number of the way in which this package keeps things in a table, in StoreFormat. Nothing tells formats
// apart by it yet, but for the one before it, which had none: there the claims of a job were in its own item.
const format = 1

// errOfBefore refuses a table of before claims had items of their own. It is noticed where noticing costs nothing: at
// the item of a workflow's name, which is read or written when a function starts and when a definition is sent, and in
// the index on CompleteBy, where the keys of such jobs have no prefix.
var errOfBefore = errors.New("this table was made by a Makegood of before claims had items of their own, and there is no way from one to the other: " +
	"let its jobs end under the version that made them, and give this version a table of its own")

// ofAJob reports whether an entry of an index is that of a job. What else is in it, under a prefix that is not known
// here, was put there by a later version, or by an agent that lies: it is left alone.
func ofAJob(it item) (bool, error) {
	pk := asText(it[attrPK])
	if !strings.Contains(pk, "#") {
		return false, fmt.Errorf("job %s: %w", pk, errOfBefore)
	}
	return strings.HasPrefix(pk, jobPrefix), nil
}
