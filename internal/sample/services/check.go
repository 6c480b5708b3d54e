package services

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/makegood-dev/makegood"
)

// Check is CheckLines for orders of one line each.
func Check(l Ledger, ends map[string]makegood.ProcessState) []string {
	return CheckLines(l, ends, nil)
}

// CheckLines compares the ledger with the states in which the jobs of the orders ended, and returns every violation,
// one a line, in the order of the orders' ids; none means that every order was made good:
//
//   - an attempt reached the shop at most once
//   - no effect stood twice at any time, and each undone effect stood before
//   - Processed: exactly one reservation of each line, one charge and one shipment stand
//   - Undone and Cancelled: no effect stands, and no money
//   - Error: the charge stands, for no other reason than that its refund was refused for good
//
// lines is how many lines each order has; an order that is not there has one. A job that has not ended is a violation,
// and so is an order that no job is for. Whether an order ended as it should have is another question, which
// Script.Ends answers.
func CheckLines(l Ledger, ends map[string]makegood.ProcessState, lines map[string]int) []string {
	found := checkRequests(l)
	runs := run(l)
	ids := maps.Clone(l.Orders)
	for id := range ends {
		ids[id] = l.Orders[id]
	}
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		state, known := ends[id]
		if !known {
			found = append(found, fmt.Sprintf("order %s: the shop worked on it, and there is no job for it", id))
			continue
		}
		for _, reason := range slices.Concat(runs[id], checkEnd(ids[id], state, max(1, lines[id]))) {
			found = append(found, fmt.Sprintf("order %s (%s): %s", id, state, reason))
		}
	}
	return found
}

func checkRequests(l Ledger) []string {
	var found []string
	for _, key := range slices.Sorted(maps.Keys(l.Requests)) {
		attempts := l.Requests[key]
		for _, attempt := range slices.Sorted(maps.Keys(attempts)) {
			if n := attempts[attempt]; n > 1 {
				found = append(found, fmt.Sprintf("attempt %d under %s reached the shop %d times", attempt, key, n))
			}
		}
	}
	return found
}

// run goes through the effects as they happened: the sums at the end do not show a charge that was
// made twice and refunded twice.
func run(l Ledger) map[string][]string {
	found := map[string][]string{}
	standing := map[acted]int{}
	for _, e := range l.Effects {
		forward := e.Action.Undoes()
		if forward == "" {
			id := acted{e.Order, e.Line, e.Action}
			if standing[id]++; standing[id] > 1 {
				found[e.Order] = append(found[e.Order], fmt.Sprintf("%s stood %d times", e.Action, standing[id]))
			}
			continue
		}
		id := acted{e.Order, e.Line, forward}
		if standing[id]--; standing[id] < 0 {
			found[e.Order] = append(found[e.Order], fmt.Sprintf("%s of a %s that did not stand", e.Action, forward))
		}
	}
	return found
}

// checkEnd compares the sums of an order of so many lines with the state in which its job ended.
func checkEnd(o Order, state makegood.ProcessState, lines int) []string {
	switch state {
	case makegood.JobProcessed:
		return nets(o, lines, 1)
	case makegood.JobUndone, makegood.JobCancelled:
		found := nets(o, 0, 0)
		if o.Amount != 0 {
			found = append(found, fmt.Sprintf("%d cents charged net, want 0", o.Amount))
		}
		return found
	case makegood.JobError:
		return checkError(o, lines)
	default:
		return []string{"the job has not ended"}
	}
}

func nets(o Order, reserved, others int) []string {
	var found []string
	for _, net := range []struct {
		what      string
		got, want int
	}{{"reservations", o.Reserved, reserved}, {"charges", o.Charged, others}, {"shipments", o.Shipped, others}} {
		if net.got != net.want {
			found = append(found, fmt.Sprintf("%d %s net, want %d", net.got, net.what, net.want))
		}
	}
	return found
}

// checkError leaves the reservations open: their release waits for the refund, unless the workflow undoes side by side.
func checkError(o Order, lines int) []string {
	var found []string
	if o.Refused[Refund] == 0 {
		found = append(found, "no refund was refused, so there is no reason to stop")
	}
	if o.Charged != 1 {
		found = append(found, fmt.Sprintf("%d charges net, want the 1 with the refused refund", o.Charged))
	}
	if o.Shipped != 0 {
		found = append(found, fmt.Sprintf("%d shipments net, want 0", o.Shipped))
	}
	if o.Reserved < 0 || o.Reserved > lines {
		found = append(found, fmt.Sprintf("%d reservations net, want 0 to %d", o.Reserved, lines))
	}
	return found
}

// maxViolations is how many violations are printed.
const maxViolations = 20

// PrintViolations writes the first violations, a line each, and how many more there are.
func PrintViolations(w io.Writer, violations []string) {
	for i, v := range violations {
		if i == maxViolations {
			fmt.Fprintf(w, "  ... and %d more\n", len(violations)-maxViolations)
			return
		}
		fmt.Fprintln(w, "  VIOLATION:", v)
	}
}
