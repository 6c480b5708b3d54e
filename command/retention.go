package command

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/embedded"
)

const day = 24 * time.Hour

// devRetention is the default of how long dev keeps jobs: a month, in which people may still ask for a job's outcome.
// run keeps every job, since the line of a deleted job would be run again.
const devRetention retention = 30 * retention(day)

// maxRetention is the longest retention: ten years.
const maxRetention = 3660 * day

// retention is how long a job is kept after its end; zero: for ever.
type retention time.Duration

func addRetention(cmd *cobra.Command, to *retention, byDefault retention) {
	*to = byDefault
	cmd.Flags().Var(to, "retention", fmt.Sprintf("`TIME` after its end at which a job is deleted with its payloads, such as 30d or 48h, at least %s; 0 keeps all", retention(embedded.MinRetention)))
}

// Type names the value in a message of the flag's library.
func (retention) Type() string { return "TIME" }

// String is what Set reads.
func (r retention) String() string {
	d := time.Duration(r)
	switch {
	case d == 0:
		return "0"
	case d%day == 0:
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	return d.String()
}

// Set reads days ("30d"), any other duration, or 0.
func (r *retention) Set(text string) error {
	d, err := parseRetention(text)
	if err != nil {
		return err
	}
	if d != 0 && (d < embedded.MinRetention || d > maxRetention) {
		return fmt.Errorf("want %s to %s, or 0", retention(embedded.MinRetention), retention(maxRetention))
	}
	*r = retention(d)
	return nil
}

func parseRetention(text string) (time.Duration, error) {
	if text == "0" {
		return 0, nil
	}
	if days, is := strings.CutSuffix(text, "d"); is {
		n, err := strconv.ParseUint(days, 10, 16)
		if err != nil {
			return 0, fmt.Errorf("%q is not a number of days", text)
		}
		return time.Duration(n) * day, nil
	}
	d, err := makegood.ParseDuration(text)
	return d.Std(), err
}
