// Command supervisor is a Lambda function that sweeps once for every event of its schedule.
package main

import "github.com/makegood-dev/makegood/onlambda"

func main() { onlambda.Supervisor() }
