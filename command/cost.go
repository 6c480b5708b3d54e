package command

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/api"
	"github.com/makegood-dev/makegood/client"
	"github.com/makegood-dev/makegood/internal/domain"
	"github.com/makegood-dev/makegood/internal/protocol"
)

const (
	// costPage is how many jobs are read at a time where each is looked at whole.
	costPage = 50
	// maxPricesBytes bounds a file of prices.
	maxPricesBytes = 64 << 10
)

// What costs are summed by.
const (
	costByJob      = "job"
	costByAgent    = "agent"
	costByTenant   = "tenant"
	costByWorkflow = "workflow"
)

func costBy() []string { return []string{costByWorkflow, costByTenant, costByAgent, costByJob} }

type costOptions struct {
	finder
	by     string
	limit  int
	prices string
	region string
	list   bool
}

// newCost makes the verb that says what jobs have cost.
func newCost() *cobra.Command {
	var o costOptions
	cmd := &cobra.Command{
		Use:   "cost",
		Short: "Say what jobs have cost on AWS, by workflow, tenant, agent or job",
		Long: fmt.Sprintf(`Sum up what the jobs that the filters of list find have cost on AWS, the dearest first: units that were counted
while they ran and are kept with them, priced by a list. By agent, what its jobs have cost is split: by attempts, and
the time of functions by how long each agent was at work; with one agent to a job that is exact.

The prices are the list prices of %s as of %s; --prices FILE brings others, as JSON: --list prints such a
file. Costs that belong to no job are not in the sum (polling, sweeps, logs, storage: docs/money.md), nor are jobs without
a count: those that were born before their stack counted, and all of an engine in a process, which does not use AWS.
Their number is printed.

Of a stack no index leads to jobs at their end: a sum reads the whole table, half a read unit for each 4 KB. It asks
first, or needs --scan. What changes while it reads is counted as it was or as it is.

Exit status: 0; 1 bad usage, or no such stack; 3 the API or AWS cannot be reached.`, makegood.ListPrices().Region, makegood.ListPrices().Date),
		Example: `  makegood cost --by workflow --since 7d --stack shop-prod --scan
  makegood cost --by tenant --workflow order --since 30d --stack shop-prod --scan --json
  makegood cost --by job --limit 10 --stack shop-prod --scan
  makegood cost --list > prices.json
  makegood cost --by agent --since 24h --prices prices.json --stack shop-prod --scan`,
		Args: none,
		RunE: func(cmd *cobra.Command, _ []string) error { return cost(cmd, o) },
	}
	o.add(cmd)
	cmd.Flags().StringVar(&o.by, "by", costByWorkflow, fmt.Sprintf("the group of each sum, `by`: %v", costBy()))
	cmd.Flags().IntVar(&o.limit, "limit", 50, "show at most this `many`; the rest is in the total")
	cmd.Flags().StringVar(&o.prices, "prices", "", "price by this `file`")
	cmd.Flags().StringVar(&o.region, "region", "", "refuse prices that are not of this `region`")
	cmd.Flags().BoolVar(&o.list, "list", false, "print the prices as JSON, and ask for no jobs")
	completeFlag(cmd, "by", completeOneOf(costBy()...))
	return cmd
}

// costRow is what the jobs have cost that are alike.
type costRow struct {
	// Of is the value that they share: the name of the workflow, tenant or agent, or the job's id; empty: none. Jobs is
	// how many there are, and Counted how many have a known cost.
	Of      string         `json:"of"`
	Jobs    int            `json:"jobs"`
	Counted int            `json:"counted"`
	Spent   makegood.Spent `json:"spent"`
	Dollars float64        `json:"dollars"`
}

// costs is what jobs have cost.
type costs struct {
	By     string          `json:"by"`
	Prices makegood.Prices `json:"prices"`
	Rows   []costRow       `json:"rows"`
	// More is how many rows are not among them. All is the sum of all jobs.
	More int     `json:"more"`
	All  costRow `json:"all"`
	Scan bool    `json:"scan"`
}

func cost(cmd *cobra.Command, o costOptions) error {
	prices, err := readPrices(o.prices, o.region)
	if err != nil {
		return exit(codeUsage, err)
	}
	if o.list {
		return printJSON(cmd.OutOrStdout(), prices)
	}
	filter, err := o.found.read()
	switch {
	case err != nil:
	case !slices.Contains(costBy(), o.by):
		err = fmt.Errorf("--by %.40q: want one of %v", o.by, costBy())
	case o.limit < 1:
		err = fmt.Errorf("--limit %d: want at least 1", o.limit)
	}
	if err != nil {
		return exit(codeUsage, err)
	}
	if err := o.mayScan(cmd, filter); err != nil {
		return err
	}
	jobs, closeJobs, err := o.jobs(cmd, o.data)
	if err != nil {
		return err
	}
	defer closeJobs()
	c := costs{By: o.by, Prices: prices, Rows: []costRow{}, Scan: o.readsAll(cmd, filter)}
	progress := newBar(cmd.Context(), cmd.ErrOrStderr(), -1)
	err = c.read(cmd.Context(), jobs, filter, o.limit, progress.ended)
	progress.close()
	if err != nil {
		return failed(cmd, err)
	}
	c.order(o.limit)
	return o.print(cmd, c, c.print)
}

// readPrices returns the prices of a file; without one the list's. A region that is named must be theirs.
func readPrices(file, region string) (makegood.Prices, error) {
	prices := makegood.ListPrices()
	if file != "" {
		var err error
		if prices, err = pricesIn(file); err != nil {
			return prices, fmt.Errorf("--prices %s: %w", file, err)
		}
	}
	if region != "" && region != prices.Region {
		return prices, fmt.Errorf("--region %s: these are the prices of %s; --prices FILE brings others: --list prints such a file, to put in the prices, region and date of yours", region, prices.Region)
	}
	return prices, nil
}

// pricesIn reads a file of prices. A price missing there is an error, not zero.
func pricesIn(file string) (prices makegood.Prices, err error) {
	f, err := os.Open(file)
	if err != nil {
		return prices, err
	}
	defer func() { _ = f.Close() }() // It was read.
	text, err := io.ReadAll(io.LimitReader(f, maxPricesBytes+1))
	if err == nil && len(text) > maxPricesBytes {
		err = fmt.Errorf("more than %d bytes", maxPricesBytes)
	}
	if err != nil {
		return prices, err
	}
	var given map[string]json.RawMessage
	if err := json.Unmarshal(text, &given); err != nil {
		return prices, err
	}
	for _, name := range []string{"millionWrites", "millionReads", "millionRequests", "millionInvocations", "gbSecond"} {
		if given[name] == nil {
			return prices, fmt.Errorf("%s is missing; want a price in dollars, 0 or more", name)
		}
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&prices); err != nil {
		return prices, err
	}
	return prices, domain.CheckPrices(prices)
}

// read sums up the jobs of a list; read jobs are told.
func (c *costs) read(ctx context.Context, jobs api.Reader, filter api.Filter, limit int, told func(n int)) error {
	switch c.By {
	case costByWorkflow:
		return c.count(ctx, jobs, filter, api.ByWorkflow, told)
	case costByTenant:
		return c.count(ctx, jobs, filter, api.ByTenant, told)
	case costByAgent:
		return c.split(ctx, jobs, filter, told)
	case costByJob:
		return c.each(ctx, jobs, filter, limit, told)
	default:
		panic("command: costs by " + c.By)
	}
}

// count has the server or the folder sum up the jobs.
func (c *costs) count(ctx context.Context, jobs api.Reader, filter api.Filter, by api.Facet, told func(n int)) error {
	var groups api.Groups
	for more := true; more; more = groups.Cursor != "" {
		page, err := jobs.Count(ctx, filter, []api.Facet{by}, groups.Cursor)
		if err != nil {
			return err
		}
		for _, g := range page.Groups {
			groups.Put(g)
		}
		groups.Cursor = page.Cursor
		c.All.Jobs += page.Jobs
		told(c.All.Jobs)
	}
	for _, g := range groups.Groups {
		c.Rows = append(c.Rows, costRow{Of: g.Values[0], Jobs: g.Jobs, Counted: g.Counted, Spent: g.Spent})
		c.All.Counted, c.All.Spent = c.All.Counted+g.Counted, c.All.Spent.Plus(g.Spent)
	}
	return nil
}

// add adds a job to the sum of all.
func (c *costs) add(spent *makegood.Spent, told func(n int)) costRow {
	row := costRow{Jobs: 1}
	if spent != nil {
		row.Counted, row.Spent = 1, *spent
	}
	c.All.Jobs++
	c.All.Counted, c.All.Spent = c.All.Counted+row.Counted, c.All.Spent.Plus(row.Spent)
	told(c.All.Jobs)
	return row
}

// each makes a row of each job, and keeps the dearest.
func (c *costs) each(ctx context.Context, jobs api.Reader, filter api.Filter, limit int, told func(n int)) error {
	rows := 0
	for listed, err := range jobs.List(ctx, filter) {
		if err != nil {
			return err
		}
		row := c.add(listed.Spent, told)
		row.Of = listed.ID
		if row.Counted == 0 {
			continue
		}
		rows++
		if c.Rows = append(c.Rows, row); len(c.Rows) >= 2*min(limit, 1<<20) {
			c.order(limit)
		}
	}
	c.More = rows - len(c.Rows)
	return nil
}

// errNoDetails: a folder does not list jobs with their steps, so its jobs cannot be counted by agent.
var errNoDetails = errors.New("--by agent: ask a process or a stack: the jobs of a folder have no count")

// split splits what each job has cost among its agents.
func (c *costs) split(ctx context.Context, jobs api.Reader, filter api.Filter, told func(n int)) error {
	all, ok := jobs.(*client.Client)
	if !ok {
		return exit(codeUsage, errNoDetails)
	}
	agents := map[string]costRow{}
	workflows := map[string]makegood.Workflow{}
	for listed, err := range protocol.Pages(func(cursor string) (api.Page, error) { return all.Details(ctx, filter, cursor, costPage) }) {
		if err != nil {
			return err
		}
		c.add(listed.Spent, told)
		if listed.Spent == nil || listed.Job == nil {
			continue
		}
		hash := listed.Job.Definition
		if _, known := workflows[hash]; !known {
			definition, err := all.Definition(ctx, hash)
			if err != nil {
				return err
			}
			workflows[hash] = definition.Workflow
		}
		for agent, spent := range splitByAgent(*listed.Job, workflows[hash], *listed.Spent) {
			row := agents[agent]
			row.Of, row.Jobs, row.Counted, row.Spent = agent, row.Jobs+1, row.Counted+1, row.Spent.Plus(spent)
			agents[agent] = row
		}
	}
	for _, row := range agents {
		c.Rows = append(c.Rows, row)
	}
	return nil
}

// order prices the rows, puts the dearest first, and leaves as many as are shown.
func (c *costs) order(limit int) {
	for i := range c.Rows {
		c.Rows[i].Dollars = c.Prices.Dollars(c.Rows[i].Spent)
	}
	c.All.Dollars = c.Prices.Dollars(c.All.Spent)
	slices.SortFunc(c.Rows, func(a, b costRow) int { return cmp.Or(cmp.Compare(b.Dollars, a.Dollars), cmp.Compare(a.Of, b.Of)) })
	if len(c.Rows) > limit {
		c.More += len(c.Rows) - limit
		c.Rows = c.Rows[:limit]
	}
}

func (c *costs) print(w io.Writer) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "%s\tJOBS\tWRITES\tREADS\tREQUESTS\tINVOCATIONS\tGB S\t$\t$ A JOB\t\n", strings.ToUpper(c.By))
	for _, row := range c.Rows {
		row.print(table, orDash(row.Of))
	}
	if c.More > 0 {
		fmt.Fprintf(table, "%s more\t\t\t\t\t\t\t\t\t\n", grouped(c.More))
	}
	c.All.print(table, "all")
	_ = table.Flush() // a closed standard output is no error
	fmt.Fprintf(w, "prices of %s, %s; polling, sweeps, logs and storage belong to no job\n", c.Prices.Region, c.Prices.Date)
	if unknown := c.All.Jobs - c.All.Counted; unknown > 0 {
		fmt.Fprintf(w, "of %s the cost is unknown: their use was not counted\n", thousands(unknown, "job"))
	}
}

func (r costRow) print(w io.Writer, of string) {
	each := "-"
	if r.Counted > 0 {
		each = dollars(r.Dollars / float64(r.Counted))
	}
	s := r.Spent
	fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%.3f\t%s\t%s\t\n", of, grouped(r.Jobs),
		units(s.WriteUnits), units(s.ReadUnits), units(s.Requests), units(s.Invocations), s.GBSeconds, dollars(r.Dollars), each)
}

// units writes a number of units, with a decimal digit for small numbers.
func units(n float64) string {
	if n >= 1000 {
		return grouped(int(n + 0.5))
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", n), ".0")
}

// dollars writes an amount, with as many digits as a job takes where it is small.
func dollars(d float64) string {
	if d >= 1 || d == 0 {
		return fmt.Sprintf("%.2f", d)
	}
	return fmt.Sprintf("%.6f", d)
}

// spentText says what a job has cost, and what that consists of.
func spentText(s makegood.Spent) string {
	prices := makegood.ListPrices()
	return fmt.Sprintf("%s $ (%s writes, %s reads, %s requests, %s invocations, %.3f GB s; prices of %s)", dollars(prices.Dollars(s)),
		units(s.WriteUnits), units(s.ReadUnits), units(s.Requests), units(s.Invocations), s.GBSeconds, prices.Region)
}
