// Package workflows is yours: workflow files and the agents that do their steps, a folder each. The
// makegood command and the Lambda functions link what is listed here. hello is the first job of a fresh stack, and
// order the sample.
package workflows

import (
	"cmp"
	"embed"
	"net/http"
	"slices"

	"github.com/makegood-dev/makegood/agent"
	"github.com/makegood-dev/makegood/workflows/hello"
	"github.com/makegood-dev/makegood/workflows/order"
)

// shopVariable is where the sample's services are, if they are not at order.DefaultShop.
const shopVariable = "MAKEGOOD_SHOP"

// Agents returns the agents of all workflows, beside the built-in http. getenv reads the environment.
func Agents(getenv func(string) string) []agent.Handler {
	shop := cmp.Or(getenv(shopVariable), order.DefaultShop)
	return slices.Concat(hello.Agents(), order.Agents(shop, newClient()))
}

// Files are the workflow files that a deployed stack knows from the start; makegood publish changes them.
//
//go:embed hello/hello.yaml order/order.yaml
var Files embed.FS

// newClient keeps enough connections for many tasks at once to one host.
func newClient() *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 256
	transport.MaxIdleConns = 0
	return &http.Client{
		Transport: transport,
		// A redirect would be a second request.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
