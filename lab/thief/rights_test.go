package thief

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/makegood-dev/makegood/lab/testkit/iam"
	"github.com/makegood-dev/makegood/lab/testkit/stackfile"
)

// usual are the services of which each function has the same rights: the key, its log, traces, and in a VPC its interfaces.
var usual = []string{"kms:", "logs:", "xray:", "ec2:"}

// rights are what the statements of a role allow beside the usual, a line each: the actions, on what, and where.
func rights(p *iam.Policies, role string) (lines []string) {
	for _, s := range p.Statements(role) {
		actions := stackfile.Texts(stackfile.At(s, "Action"))
		if slices.ContainsFunc(usual, func(service string) bool { return strings.HasPrefix(actions[0], service) }) {
			continue
		}
		var on []string
		for _, resource := range stackfile.Texts(stackfile.At(s, "Resource")) {
			if name := short(resource); !slices.Contains(on, name) {
				on = append(on, name)
			}
		}
		line := fmt.Sprintf("%s | %s | %s |", strings.Join(actions, ", "), strings.Join(on, ", "), where(stackfile.At(s, "Condition")))
		if !slices.Contains(lines, line) { // A queue more is a statement more.
			lines = append(lines, line)
		}
	}
	return lines
}

// short names a resource as people do, of any agent.
func short(arn string) string {
	for _, agent := range []string{"inventory", "payments", "shipping", "http", "hello"} {
		arn = strings.ReplaceAll(strings.ReplaceAll(arn, "/"+agent+"/", "/AGENT/"), "-"+agent, "-AGENT")
	}
	switch name := arn[strings.LastIndexByte(arn, ':')+1:]; {
	case name == "table/TABLE":
		return "the table"
	case strings.HasPrefix(name, "table/TABLE/index/"):
		return "its index `" + strings.TrimPrefix(name, "table/TABLE/index/") + "`"
	default:
		return "`" + strings.TrimPrefix(name, "parameter") + "`"
	}
}

// where says when a statement holds. That the account is the stack's own, and that a key is named, goes without saying.
func where(condition any) string {
	var parts []string
	for _, c := range []struct{ operator, key, says string }{
		{"ForAllValues:StringLike", "dynamodb:LeadingKeys", "the key is like "},
		{"ForAllValues:StringEquals", "dynamodb:Attributes", "it names no attributes but "},
	} {
		if values := stackfile.Texts(stackfile.At(condition, c.operator, c.key)); len(values) > 0 {
			parts = append(parts, c.says+"`"+strings.ReplaceAll(strings.Join(values, "`, `"), "payments", "AGENT")+"`")
		}
	}
	return strings.Join(parts, "; ")
}

// What each function may do, in the docs, is what the template's statements allow.
func TestTheRightsInTheDocsAreThoseOfTheTemplate(t *testing.T) {
	parameters := iam.Everything("create")
	parameters["WebhookParameter"] = "arn:aws:ssm:REGION:ACCOUNT:parameter/WEBHOOK"
	p, err := iam.Load(read(t, "template.yaml"), parameters, iam.World{
		Region: "REGION", Account: "ACCOUNT", Stack: "STACK", Names: map[string]string{"Table": "TABLE", "Payloads": "BUCKET"},
	})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("| function | may | on | where |\n|---|---|---|---|\n")
	for _, of := range []struct{ role, name string }{
		{Scheduler, "Scheduler"},
		{Agent, "agent"},
		{Supervisor, "Supervisor"},
		{Submit, "door `submit`"},
		{Read, "door `read`"},
		{Operate, "door `operate`"},
		{Complete, "door `complete`"},
		{Schedule, "its schedule"},
	} {
		for _, line := range rights(p, of.role) {
			b.WriteString("| " + of.name + " | " + line + "\n")
		}
	}
	sameAs(t, "docs/deploy.md", "what each function may", b.String())
}

// What an agent outside of Lambda may by the policies that docs/long-steps.md shows is what its function may.
func TestAnAgentOutsideMayWhatItsFunctionMay(t *testing.T) {
	p := policies(t)
	page := strings.NewReplacer("films-prod", World().Stack, "studio", "payments", "BUCKET", World().Names["Payloads"]).Replace(read(t, "docs/long-steps.md"))
	const outside = "outside"
	for _, heading := range []string{"### What the credentials must allow", "Where the stack has a bucket for payloads, this as well:"} {
		if err := p.Shown(outside, page, heading); err != nil {
			t.Fatal(err)
		}
	}
	function, stranger := clientsOf(t.Context(), Agent, &iam.Judge{Policies: p}), clientsOf(t.Context(), outside, &iam.Judge{Policies: p})
	for _, try := range Tries() {
		if want, got := try.allowed(function), try.allowed(stranger); got != want {
			t.Errorf("%s: an agent outside may: %v, its function may: %v", try.What, got, want)
		}
	}
}
