// Command door is a Lambda function behind a URL that asks IAM who knocks. MAKEGOOD_DOOR says what it lets them do:
// submit, read or operate. Or it is complete, behind a URL without a login: there a completion token is the right.
package main

import (
	"github.com/makegood-dev/makegood/onlambda"
	"github.com/makegood-dev/makegood/workflows"
)

func main() { onlambda.Door(workflows.Files) }
