// Package thief tries what somebody might like to do who has stolen a role of a stack, with the SDK's own clients: each
// request is judged by the policies (package iam), and goes nowhere. What each role may do stands beside each try. Only
// tests import it.
package thief

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/smithy-go"

	"github.com/makegood-dev/makegood/lab/testkit/iam"
)

// Try is something that a thief of a role might like to do, and the roles that may.
type Try struct {
	What    string
	request request
	May     []string
}

// Tries are all of them.
func Tries() []Try {
	return slices.Concat(triesOnClaims(), triesOnTheTable(), triesOnQueues(), triesOnPayloads(), triesBeside())
}

// Roles are those that thieves have.
func Roles() []string {
	return []string{Agent, Supervisor, Schedule, Read, Complete, Submit, Operate, Scheduler, Transaction, Message, DeadLetters}
}

// errDenied is what a request meets that has no client.
var errDenied = errors.New("denied")

// allowed makes a request with the credentials of a role, and reports whether it was not denied.
func (t Try) allowed(c clients) bool {
	err := t.request(c)
	var answer smithy.APIError
	denied := errors.Is(err, errDenied) || errors.As(err, &answer) && slices.Contains([]string{"AccessDeniedException", "AccessDenied", "AuthorizationError"}, answer.ErrorCode())
	return !denied
}

// Wrong makes every try as each role that there are policies for, and says which may what they should not, and cannot
// what they should.
func Wrong(ctx context.Context, p *iam.Policies) (found []string) {
	for _, role := range Roles() {
		if !slices.Contains(p.Roles(), role) {
			continue
		}
		c := clientsOf(ctx, role, &iam.Judge{Policies: p})
		for _, t := range Tries() {
			switch got, want := t.allowed(c), slices.Contains(t.May, role); {
			case got && !want:
				found = append(found, role+" may "+t.What)
			case want && !got:
				found = append(found, role+" cannot "+t.What)
			}
		}
	}
	return found
}

// Table is every try by every role, as Markdown.
func Table(ctx context.Context, p *iam.Policies) string {
	names := map[string]string{
		Agent: "an agent", Supervisor: "Supervisor", Schedule: "its schedule", Read: "`read`", Complete: "`complete`", Submit: "`submit`", Operate: "`operate`",
		Scheduler: "Scheduler", Transaction: "own transaction", Message: "by message", DeadLetters: "dead letters",
	}
	var b strings.Builder
	b.WriteString("| try |")
	for _, role := range Roles() {
		b.WriteString(" " + names[role] + " |")
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(Roles())) + "\n")
	var thieves []clients
	for _, role := range Roles() {
		thieves = append(thieves, clientsOf(ctx, role, &iam.Judge{Policies: p}))
	}
	for _, t := range Tries() {
		fmt.Fprintf(&b, "| %s |", t.What)
		for _, c := range thieves {
			b.WriteString(map[bool]string{true: " may |", false: " |"}[t.allowed(c)])
		}
		b.WriteString("\n")
	}
	return b.String()
}
