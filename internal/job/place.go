package job

import (
	"encoding/base64"
	"errors"
	"strconv"
	"strings"

	"github.com/makegood-dev/makegood"
)

// Place is a step in a round and a direction, and how whoever speaks of it knows it.
type Place struct {
	Step string
	Undo bool
	// Round is that of the job; 0, which a token never has: whichever it is in.
	Round int
	// Token is the completion token; empty where whoever asks is known, and named the step by its address.
	Token string
}

// String is STEP/ROUND, with /undo behind it for an undo.
func (p Place) String() string {
	text := p.Step + "/" + strconv.Itoa(p.Round)
	if p.Undo {
		text += "/undo"
	}
	return text
}

// completionScheme is the number of the way in which completion tokens are made. A "c" before it tells them from those of
// attempts.
const completionScheme = 1

// ErrCompletionToken: a text is no completion token. ErrLaterCompletionToken: it is one that only a later release can read.
var (
	ErrCompletionToken      = errors.New("this is no completion token")
	ErrLaterCompletionToken = errors.New("this is a completion token of a later release")
)

// Says is what a completion token of a place says, and what its code is made of. Neither ids nor names of steps have such
// a byte as is between them.
func (p Place) Says(id string) string {
	direction := "forward"
	if p.Undo {
		direction = "undo"
	}
	return strings.Join([]string{id, p.Step, strconv.Itoa(p.Round), direction}, "\x00")
}

// WriteCompletionToken writes the completion token of a place, with its code.
func WriteCompletionToken(id string, p Place, code string) string {
	return "c" + strconv.Itoa(completionScheme) + "." + base64.RawURLEncoding.EncodeToString([]byte(p.Says(id))) + "." + code
}

// ReadCompletionToken says of which job and step a completion token speaks. Whether it is genuine only the job can tell.
// ErrCompletionToken, ErrLaterCompletionToken.
func ReadCompletionToken(token string) (id string, p Place, err error) {
	parts := strings.Split(token, ".")
	if len(token) > makegood.MaxCompletionTokenBytes || len(parts) < 2 {
		return "", p, ErrCompletionToken
	}
	digits, is := strings.CutPrefix(parts[0], "c")
	scheme, err := strconv.Atoi(digits)
	switch {
	case !is || err != nil || scheme < completionScheme || strconv.Itoa(scheme) != digits:
		return "", p, ErrCompletionToken
	case scheme > completionScheme:
		return "", p, ErrLaterCompletionToken
	}
	says, err := base64.RawURLEncoding.Strict().DecodeString(parts[1])
	fields := strings.Split(string(says), "\x00")
	if err != nil || len(parts) != 3 || len(fields) != 4 {
		return "", p, ErrCompletionToken
	}
	round, err := strconv.Atoi(fields[2])
	p = Place{Step: fields[1], Undo: fields[3] == "undo", Round: round, Token: token}
	if err != nil || round < 1 || makegood.CheckJobID(fields[0]) != nil || makegood.StepName.Check(p.Step) != nil || p.Says(fields[0]) != string(says) {
		return "", Place{}, ErrCompletionToken
	}
	return fields[0], p, nil
}

// Code is the end of a completion token: what only the job can have made.
func (p Place) Code() string { return p.Token[strings.LastIndexByte(p.Token, '.')+1:] }
