package job

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/limits"
)

// Limit bounds the attempts of an agent. It has a Most, or a Rate, or both.
type Limit struct {
	// Most is how many attempts may be with the agent at once; 0: any number.
	Most int `json:"most,omitempty"`
	// Rate is how many attempts are admitted in each Per, and Burst how many of them at one moment; 0: any number.
	Rate  int           `json:"rate,omitempty"`
	Per   time.Duration `json:"per,omitempty"`
	Burst int           `json:"burst,omitempty"`
	// Key is an expression over the input of a job; the limit is one for each of its values. Empty: one for all.
	Key string `json:"key,omitempty"`
}

// LimitOf reads a limit as people write it.
func LimitOf(from makegood.Limit) (Limit, error) {
	l := Limit{Most: from.Concurrency, Burst: from.Burst, Key: from.Key}
	switch {
	case l.Most < 0 || l.Most > limits.MaxPermits:
		return l, fmt.Errorf("a limit of %d: want 1 to %d attempts at once", l.Most, limits.MaxPermits)
	case l.Burst < 0 || l.Burst > limits.MaxPermits:
		return l, fmt.Errorf("a burst of %d: want 1 to %d attempts at one moment", l.Burst, limits.MaxPermits)
	case from.Rate == "" && l.Burst > 0:
		return l, fmt.Errorf("a burst of %d: want a rate with it", l.Burst)
	case from.Rate == "" && l.Most == 0 && l.Key != "":
		return l, errors.New("a key: want a concurrency or a rate with it")
	case from.Rate == "":
		return l, nil
	}
	number, per, _ := strings.Cut(from.Rate, "/")
	l.Per = map[string]time.Duration{"s": time.Second, "m": time.Minute}[per]
	var err error
	if l.Rate, err = strconv.Atoi(number); err != nil || l.Per == 0 || l.Rate < 1 || l.Rate > limits.MaxRate {
		return l, fmt.Errorf("a rate of %.20q: want 1/s to %d/s, or 1/m to %[2]d/m", from.Rate, limits.MaxRate)
	}
	if l.Burst == 0 {
		perSecond := (time.Duration(l.Rate)*time.Second + l.Per - 1) / l.Per
		l.Burst = min(int(perSecond), limits.MaxPermits)
	}
	return l, nil
}

// RateText is the rate as people write it; empty: there is none.
func (l Limit) RateText() string {
	switch {
	case l.Rate == 0:
		return ""
	case l.Per == time.Second:
		return fmt.Sprintf("%d/s", l.Rate)
	}
	return fmt.Sprintf("%d/m", l.Rate)
}

// Cools is how long a token is not taken again, in whole milliseconds: in any window of it at most Burst attempts are
// admitted.
func (l Limit) Cools() time.Duration {
	every := time.Duration(l.Rate) * time.Millisecond
	return (time.Duration(l.Burst)*l.Per + every - 1) / every * time.Millisecond
}
