package login

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/makegood-dev/makegood/internal/limits"
)

const (
	// prefix begins every token, so that secret scanners find a published one.
	prefix = "mgt_"
	// maxTokens is how many tokens a file may hold.
	maxTokens = 10_000
	// maxFileBytes is how large the file may be.
	maxFileBytes = 4 << 20
	// hashPrefix names the hash in the file.
	hashPrefix = "sha256:"
)

// Token is a line of the file: NAME ROLE sha256:HEX. The file has hashes and no token. A token is 128 random bits, too
// many to guess from a hash, so the hash needs no salt and no cost.
type Token struct {
	Name string
	Role Role
	hash [sha256.Size]byte
}

// Short distinguishes the tokens of a name: the beginning of the hash.
func (t Token) Short() string { return hex.EncodeToString(t.hash[:4]) }

// Tokens are the tokens of a file, which is read again when it changes. A malformed file refuses every token: a revoked
// one must not stay valid because of a slip elsewhere in the file.
type Tokens struct {
	file string

	mu   sync.Mutex
	seen string
	all  []Token
	err  error
}

// OpenTokens reads a file of tokens. It fails where a line is wrong, or where others than its owner may write it.
func OpenTokens(file string) (*Tokens, error) {
	t := &Tokens{file: file}
	_, err := t.current()
	return t, err
}

// current returns the tokens, after a look at whether the file has changed.
func (t *Tokens) current() ([]Token, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	info, err := os.Stat(t.file)
	if err != nil {
		t.seen = ""
		return nil, fmt.Errorf("the file of tokens: %w", err)
	}
	if now := fmt.Sprint(info.Size(), info.ModTime().UnixNano(), info.Mode()); now != t.seen {
		t.all, t.err = ReadTokens(t.file)
		t.seen = now
	}
	return t.all, t.err
}

// find returns the token with this hash. It compares all hashes, each in constant time, so its duration leaks none.
func (t *Tokens) find(hash [sha256.Size]byte) (found Token, ok bool, err error) {
	all, err := t.current()
	if err != nil {
		return Token{}, false, err
	}
	at := -1
	for i := range all {
		at = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(all[i].hash[:], hash[:]), i, at)
	}
	if at < 0 {
		return Token{}, false, nil
	}
	return all[at], true, nil
}

// ReadTokens reads a file of tokens: all that is wrong, FILE:LINE each.
func ReadTokens(file string) ([]Token, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, fmt.Errorf("the file of tokens: %w", err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o022 != 0 {
		return nil, fmt.Errorf("%s may be written by others than its owner, and they could add a token of their own: chmod 600 %s", file, file)
	}
	if info.Size() > maxFileBytes {
		return nil, fmt.Errorf("%s has %d bytes, the limit is %d", file, info.Size(), maxFileBytes)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("the file of tokens: %w", err)
	}
	return parseTokens(file, text)
}

func parseTokens(file string, text []byte) (all []Token, err error) {
	var wrong []error
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line, _, _ := strings.Cut(lines.Text(), "#")
		if strings.TrimSpace(line) == "" {
			continue
		}
		t, err := parseToken(line)
		if err == nil {
			err = fits(all, t)
		}
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s:%d: %w", file, n, err))
			continue
		}
		all = append(all, t)
	}
	if err := lines.Err(); err != nil {
		wrong = append(wrong, fmt.Errorf("%s: %w", file, err))
	}
	if len(wrong) > 0 {
		return nil, errors.Join(wrong...)
	}
	return all, nil
}

// parseToken reads a line.
func parseToken(line string) (Token, error) {
	fields := strings.Fields(line)
	if len(fields) != 3 {
		return Token{}, errors.New("want NAME ROLE sha256:HEX, as `makegood serve token new` writes it")
	}
	t := Token{Name: fields[0], Role: Role(fields[1])}
	if err := t.check(); err != nil {
		return Token{}, err
	}
	text, is := strings.CutPrefix(fields[2], hashPrefix)
	sum, err := hex.DecodeString(text)
	if !is || err != nil || len(sum) != sha256.Size {
		return Token{}, errors.New("the hash of a token is sha256: and 64 hexadecimal digits")
	}
	copy(t.hash[:], sum)
	return t, nil
}

// check refuses a name or a role that cannot be.
func (t Token) check() error {
	if err := limits.CheckWho(t.Name); err != nil || t.Name == "" || strings.ContainsAny(t.Name, " \t#") {
		return fmt.Errorf("the name %.70q: want a name of at most %d bytes, without spaces and #", t.Name, limits.MaxWhoBytes)
	}
	if !slices.Contains([]Role{Reader, Operator, Agent}, t.Role) {
		return fmt.Errorf("the role %.40q: want %s, %s or %s", string(t.Role), Operator, Reader, Agent)
	}
	return nil
}

// fits refuses a token beside others: each person has one role, and the file an end. Agents and people may share names.
func fits(all []Token, t Token) error {
	if len(all) == maxTokens {
		return fmt.Errorf("these are more than %d tokens", maxTokens)
	}
	for _, other := range all {
		if other.Name == t.Name && other.Role != t.Role && other.Role != Agent && t.Role != Agent {
			return fmt.Errorf("%s is a %s already, and has one role", t.Name, other.Role)
		}
	}
	return nil
}

// NewToken makes a token, appends its hash to the file, which it makes if needed, and returns it. It is not kept.
func NewToken(file, name string, role Role) (token string, err error) {
	token = prefix + rand.Text()
	t := Token{Name: name, Role: role, hash: sha256.Sum256([]byte(token))}
	if err := t.check(); err != nil {
		return "", err
	}
	all, err := ReadTokens(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if err := fits(all, t); err != nil {
		return "", err
	}
	// A single append: two commands at once lose no line of each other.
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", fmt.Errorf("the file of tokens: %w", err)
	}
	_, err = f.WriteString(separator(f) + t.line())
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return "", fmt.Errorf("the file of tokens: %w", err)
	}
	return token, nil
}

// separator ends the last line of a file, if it has no end.
func separator(f *os.File) string {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return ""
	}
	last := make([]byte, 1)
	if _, err := f.ReadAt(last, info.Size()-1); err != nil || last[0] == '\n' {
		return ""
	}
	return "\n"
}

func (t Token) line() string {
	return fmt.Sprintf("%s %s %s%s\n", t.Name, t.Role, hashPrefix, hex.EncodeToString(t.hash[:]))
}

// Revoke takes the tokens of a name out of the file: all, or the one with this Short. It returns how many these were.
// Lines that are not theirs stay as they are, with their comments.
func Revoke(file, name, short string) (int, error) {
	if _, err := ReadTokens(file); err != nil {
		return 0, err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	var kept []byte
	taken := 0
	for line := range bytes.Lines(text) {
		content, _, _ := strings.Cut(string(line), "#")
		t, err := parseToken(content)
		if err == nil && t.Name == name && (short == "" || short == t.Short()) {
			taken++
			continue
		}
		kept = append(kept, line...)
	}
	if taken == 0 {
		return 0, nil
	}
	return taken, replace(file, kept)
}

// replace exchanges the content of a file, whole or not at all.
func replace(file string, content []byte) error {
	next, err := os.CreateTemp(filepath.Dir(file), ".tokens-*")
	if err != nil {
		return err
	}
	_, err = next.Write(content)
	if err = errors.Join(err, next.Sync(), next.Close()); err == nil {
		err = os.Rename(next.Name(), file)
	}
	if err != nil {
		return errors.Join(err, os.Remove(next.Name()))
	}
	return nil
}
