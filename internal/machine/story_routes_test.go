package machine_test

import (
	"encoding/json"
	"strings"

	"github.com/makegood-dev/makegood"
)

// routes reads onError=KIND:DO[:ATTEMPTS or OUTPUT];...
func (s *story) routes(a args) []makegood.ErrorRoute {
	var all []makegood.ErrorRoute
	for said := range strings.SplitSeq(a.or("onError", ""), ";") {
		if said == "" {
			continue
		}
		parts := strings.SplitN(said, ":", 3)
		r := makegood.ErrorRoute{Kind: parts[0]}
		if err := r.Do.UnmarshalText([]byte(parts[1])); err != nil {
			s.t.Fatal(err)
		}
		if len(parts) == 3 && r.Do.Action == makegood.RouteRetry {
			r.Retry.Attempts = s.number(parts[2])
		} else if len(parts) == 3 {
			r.Output = json.RawMessage(parts[2])
		}
		all = append(all, r)
	}
	return all
}

// onAnswer reads onAnswer=ANSWER:DO;...
func (s *story) onAnswer(a args) map[string]makegood.AnswerDo {
	all := map[string]makegood.AnswerDo{}
	for said := range strings.SplitSeq(a.or("onAnswer", ""), ";") {
		if said == "" {
			continue
		}
		answer, text, _ := strings.Cut(said, ":")
		var do makegood.AnswerDo
		if err := do.UnmarshalText([]byte(text)); err != nil {
			s.t.Fatal(err)
		}
		all[answer] = do
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

// repeat reads repeat=EVERY,FOR[,ATTEMPTS].
func (s *story) repeat(a args) *makegood.Repeat {
	said, ok := a.values["repeat"]
	if !ok {
		return nil
	}
	parts := strings.Split(said, ",")
	r := &makegood.Repeat{Every: s.duration(parts[0]), For: s.duration(parts[1])}
	if len(parts) == 3 {
		r.Attempts = s.number(parts[2])
	}
	return r
}
