package oracle

import (
	"encoding/json"
	"time"

	"github.com/makegood-dev/makegood"
)

// What docs/waiting.md says of onAnswer.

// says is what follows from an output that an approval was given; nothing: its job goes on.
func (s *Side) says(output string) makegood.AnswerDo {
	var answer string
	if s.undo || json.Unmarshal([]byte(output), &answer) != nil {
		return makegood.AnswerDo{}
	}
	return s.def.OnAnswer[answer]
}

// endsWith: the side is over with what somebody answered, or with what its deadline stands for, which is kept as output.
func (j *Job) endsWith(side *Side, answer, output string, now time.Time) {
	do := side.says(answer)
	switch {
	case do.Action == "" || !j.forwards():
		j.finish(side, output, now)
	case do.Action == makegood.AnswerUndo:
		j.finish(side, output, now)
		j.turn(makegood.JobUndone)
	case do.Action == makegood.AnswerGoto:
		j.finish(side, output, now)
		side.Phase, side.WentTo = Skipped, do.Step
		j.leaveOut(side.def.Name, do.Step, now)
	case do.Action == makegood.AnswerFail:
		j.count(side, false)
		side.rejected = true
		j.after(side, makegood.KindAnswer, false, 0, now)
	default:
		j.count(side, false)
		side.Phase, side.FinishedAt = GivenUp, now
		if j.State != makegood.JobError {
			j.stop(now)
		}
	}
}
