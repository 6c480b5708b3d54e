package job

import (
	"encoding/base64"
	"errors"
	"strconv"
	"strings"

	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/limits"
)

// Place is a step in a round and a direction, and how the caller knows it.
type Place struct {
	Step string
	Undo bool
	// Round is that of the job; 0, which a token never has: whichever it is in.
	Round int
	// Generation is Activity.Generation as a token says it: which description of the step it is of.
	Generation int
	// Token is the completion token; empty where the caller is known, and named the step by its address.
	Token string
}

// String is STEP/ROUND, with .GENERATION behind it for a later one, and /undo for an undo.
func (p Place) String() string {
	text := p.Step + "/" + strconv.Itoa(p.Round)
	if p.Generation > 0 {
		text += "." + strconv.Itoa(p.Generation)
	}
	if p.Undo {
		text += "/undo"
	}
	return text
}

// The numbers of the ways in which completion tokens are made. A "c" before them tells them from those of attempts.
const (
	// completionScheme is that of a step which is as it was when its round began: every release reads it.
	completionScheme = 1
	// generationScheme says the generation, too. A release that does not know it leaves such jobs alone: LevelRedefined.
	generationScheme = 2
)

// ErrCompletionToken: a text is no completion token. ErrLaterCompletionToken: only a later release can read it.
var (
	ErrCompletionToken      = errors.New("this is no completion token")
	ErrLaterCompletionToken = errors.New("this is a completion token of a later release")
)

// AppendSays appends the text of a completion token of a place, from which its code is made. Neither ids nor names of
// steps have such a byte as is between them.
func (p Place) AppendSays(to []byte, id string) []byte {
	direction := "forward"
	if p.Undo {
		direction = "undo"
	}
	to = append(append(append(append(to, id...), 0), p.Step...), 0)
	to = append(append(strconv.AppendInt(to, int64(p.Round), 10), 0), direction...)
	if p.Generation > 0 {
		to = strconv.AppendInt(append(to, 0), int64(p.Generation), 10)
	}
	return to
}

// usualTokenBytes is the length that most completion tokens do not exceed.
const usualTokenBytes = 192

// WriteCompletionToken writes the completion token of a place, with its code.
func WriteCompletionToken(id string, p Place, code string) string {
	scheme := completionScheme
	if p.Generation > 0 {
		scheme = generationScheme
	}
	var room, says [usualTokenBytes]byte
	token := append(strconv.AppendInt(append(room[:0], 'c'), int64(scheme), 10), '.')
	token = base64.RawURLEncoding.AppendEncode(token, p.AppendSays(says[:0], id))
	return string(append(append(token, '.'), code...))
}

// ReadCompletionToken returns the job and step of a completion token. Whether it is genuine only the job can tell.
// ErrCompletionToken, ErrLaterCompletionToken.
func ReadCompletionToken(token string) (id string, p Place, err error) {
	parts := strings.Split(token, ".")
	if len(token) > limits.MaxCompletionTokenBytes || len(parts) < 2 {
		return "", p, ErrCompletionToken
	}
	digits, is := strings.CutPrefix(parts[0], "c")
	scheme, err := strconv.Atoi(digits)
	switch {
	case !is || err != nil || scheme < completionScheme || strconv.Itoa(scheme) != digits:
		return "", p, ErrCompletionToken
	case scheme > generationScheme:
		return "", p, ErrLaterCompletionToken
	}
	says, err := base64.RawURLEncoding.Strict().DecodeString(parts[1])
	if err != nil || len(parts) != 3 {
		return "", p, ErrCompletionToken
	}
	id, p, ok := placeSaid(scheme, string(says))
	if !ok {
		return "", Place{}, ErrCompletionToken
	}
	p.Token = token
	return id, p, nil
}

// placeSaid reads what a completion token of a scheme says, if it is written as Says writes it.
func placeSaid(scheme int, says string) (id string, p Place, ok bool) {
	fields := strings.Split(says, "\x00")
	generations := scheme - completionScheme
	if len(fields) != 4+generations {
		return "", p, false
	}
	p = Place{Step: fields[1], Undo: fields[3] == "undo"}
	var err, wrong error
	p.Round, err = strconv.Atoi(fields[2])
	if generations > 0 {
		p.Generation, wrong = strconv.Atoi(fields[4])
	}
	if err != nil || wrong != nil || p.Round < 1 || domain.CheckJobID(fields[0]) != nil || limits.StepName.Check(p.Step) != nil {
		return "", p, false
	}
	return fields[0], p, string(p.AppendSays(nil, fields[0])) == says
}

// Code is the end of a completion token: what only the job can have made.
func (p Place) Code() string { return p.Token[strings.LastIndexByte(p.Token, '.')+1:] }
