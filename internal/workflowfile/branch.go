package workflowfile

import (
	"encoding/json"
	"strings"
)

// branch is the part of an output, or of a member in it, that is read: the whole, or some members.
type branch struct {
	all     bool
	members map[string]*branch
	depth   int
}

// maxBranch is how deep members are distinguished. What lies deeper is read as a whole.
const maxBranch = 16

// member returns the branch of a member, and adds it if it is new.
func (b *branch) member(name string) *branch {
	if b.members == nil {
		b.members = map[string]*branch{}
	}
	m := b.members[name]
	if m == nil {
		m = &branch{depth: b.depth + 1}
		b.members[name] = m
	}
	return m
}

func (b *branch) add(other *branch) {
	b.all = b.all || other.all
	for name, m := range other.members {
		b.member(name).add(m)
	}
}

// cut returns the read part of a JSON value, as JSON. Where a member of a value that is no object is read, the value
// stays whole, so that jq reports the same error.
func (b *branch) cut(value json.RawMessage) json.RawMessage {
	if b.all || !json.Valid(value) {
		return value
	}
	out, _ := b.append(nil, value, skipSpace(value, 0))
	return out
}

// append appends the read part of the valid JSON value at i, and returns the end of the value.
func (b *branch) append(out, text []byte, i int) ([]byte, int) {
	if b.all || text[i] != '{' {
		end := endOfValue(text, i)
		return append(out, text[i:end]...), end
	}
	out = append(out, '{')
	begin := len(out)
	for i = skipSpace(text, i+1); text[i] != '}'; i = skipSpace(text, i) {
		if text[i] == ',' {
			i++
			continue
		}
		end := endOfText(text, i)
		key := text[i:end]
		i = skipSpace(text, skipSpace(text, end)+1) // beyond the colon
		m := b.members[keyOf(key)]
		if m == nil || !m.all && m.members == nil {
			i = endOfValue(text, i)
			continue
		}
		if len(out) > begin {
			out = append(out, ',')
		}
		out, i = m.append(append(append(out, key...), ':'), text, i)
	}
	return append(out, '}'), i + 1
}

// keyOf returns the value of a JSON text.
func keyOf(text []byte) string {
	var key string
	if err := json.Unmarshal(text, &key); err != nil {
		panic("workflowfile: a text that is not JSON in JSON that is valid: " + err.Error())
	}
	return key
}

func skipSpace(text []byte, i int) int {
	for i < len(text) && strings.IndexByte(" \t\r\n", text[i]) >= 0 {
		i++
	}
	return i
}

// endOfText finds the end of the JSON text that begins at i.
func endOfText(text []byte, i int) int {
	for i++; i < len(text) && text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return min(i+1, len(text))
}

// endOfValue finds the end of the JSON value that begins at i.
func endOfValue(text []byte, i int) int {
	open := 0
	for {
		switch text[i] {
		case '"':
			i = endOfText(text, i)
		case '{', '[':
			open++
			i++
		case '}', ']':
			open--
			i++
		case ' ', '\t', '\r', '\n', ',', ':':
			i++
			continue
		default:
			i = endOfWord(text, i)
		}
		if open == 0 {
			return i
		}
	}
}

// endOfWord finds the end of a number, true, false or null.
func endOfWord(text []byte, i int) int {
	for i < len(text) && strings.IndexByte(" \t\r\n,:]}", text[i]) < 0 {
		i++
	}
	return i
}

// leastBytes is the minimum that a value counts for: in memory, the shortest take several times their text.
const leastBytes = 8

// weigh is how many bytes a value counts for, valid JSON or not.
func weigh(text []byte) int {
	bytes := 0
	for i := 0; i < len(text); {
		end := i + 1
		switch text[i] {
		case ' ', '\t', '\r', '\n', ',', ':', '}', ']':
			i = end
			continue
		case '{', '[':
		case '"':
			end = endOfText(text, i)
		default:
			end = endOfWord(text, i)
		}
		bytes += max(leastBytes, end-i)
		i = end
	}
	return bytes
}
