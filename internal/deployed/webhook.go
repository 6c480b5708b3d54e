package deployed

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/makegood-dev/makegood/internal/notify"
	"github.com/makegood-dev/makegood/internal/notify/webhook"
)

// addressKept is for how long a webhook's address is not asked for again: so long may alerts go to the old
// one after it was changed.
const addressKept = 5 * time.Minute

// errAddress: what the parameter holds is no address. It is not shown, since it may be a secret in the
// wrong place.
var errAddress = errors.New("its value is not an address of http or https")

// parameterReader is the part of SSM in use.
type parameterReader interface {
	GetParameter(context.Context, *ssm.GetParameterInput, ...func(*ssm.Options)) (*ssm.GetParameterOutput, error)
}

// keptWebhook sends alerts to an address that SSM keeps, since it may hold a secret. It reads the address at the first
// alert, and not at the start: an unreadable address must not stop jobs. An alert that fails for that reason is
// retried, as any other.
type keptWebhook struct {
	ssm       parameterReader
	parameter string
	now       func() time.Time

	mu    sync.Mutex
	hook  webhook.Webhook
	until time.Time
}

var _ notify.Alerter = (*keptWebhook)(nil)

// Alert posts an alert, and asks for the address first, if it is not known.
func (k *keptWebhook) Alert(ctx context.Context, a notify.Alert) error {
	hook, err := k.current(ctx)
	if err != nil {
		return err
	}
	return hook.Alert(ctx, a)
}

// current returns the webhook at the address that SSM has, or had a short time ago.
func (k *keptWebhook) current(ctx context.Context) (webhook.Webhook, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.now().Before(k.until) {
		return k.hook, nil
	}
	got, err := k.ssm.GetParameter(ctx, &ssm.GetParameterInput{Name: &k.parameter, WithDecryption: aws.Bool(true)})
	if err != nil {
		return webhook.Webhook{}, fmt.Errorf("webhook: read its address, %s: %w", k.parameter, err)
	}
	address := ""
	if got.Parameter != nil {
		address = aws.ToString(got.Parameter.Value)
	}
	if !webhook.IsAddress(address) {
		return webhook.Webhook{}, fmt.Errorf("webhook: %s: %w", k.parameter, errAddress)
	}
	k.hook, k.until = webhook.Webhook{URL: address}, k.now().Add(addressKept)
	return k.hook, nil
}
