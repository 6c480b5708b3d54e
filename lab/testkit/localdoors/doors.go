// Package localdoors serves the doors of a stack that is deployed to a stand-in, for tests and rehearsals.
package localdoors

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/makegood-dev/makegood/client"
	"github.com/makegood-dev/makegood/client/doors"
	"github.com/makegood-dev/makegood/internal/testkit/functionurl"
)

// maxAnswer is how much of a function's answer is read, in bytes: more than Lambda lets out.
const maxAnswer = 8 << 20

// ErrDenied is what Invoke returns where IAM does not let the caller invoke the function.
var ErrDenied = errors.New("denied")

// LocalDoors serves the doors of a deployed stack on this machine, for stand-ins whose function URLs tell a function
// nothing of who knocks. The door's own function is invoked, through Lambda's API at an endpoint; what is ours is
// the URL before it.
type LocalDoors struct {
	doors.Addresses
	servers []*http.Server
}

// Caller is who knocks at local doors, for whatever key the environment has.
const Caller = "arn:aws:iam::000000000000:user/rehearsal"

// OnStandIn returns a client of a stack that is deployed to the stand-in at an endpoint, through local doors which
// only the credentials of c open, and other key ids with the same secret: MiniStack's functions have the number of
// their account for one.
func OnStandIn(ctx context.Context, endpoint, stack string, c aws.Config, also ...string) (*client.Client, *LocalDoors, error) {
	credentials, err := c.Credentials.Retrieve(ctx)
	if err != nil {
		return nil, nil, err
	}
	keys := map[string]functionurl.Key{}
	for _, id := range append(also, credentials.AccessKeyID) {
		keys[id] = functionurl.Key{Secret: credentials.SecretAccessKey, ARN: Caller}
	}
	l, err := OpenDoors(endpoint, stack, c, keys)
	if err != nil {
		return nil, nil, err
	}
	asks, err := doors.New(doors.Config{AWS: c, Stack: stack, Addresses: l.Addresses})
	if err != nil {
		return nil, nil, errors.Join(err, l.Close())
	}
	return asks, l, nil
}

// OpenDoors opens those of a stack, for who has one of these keys. Close ends them.
func OpenDoors(endpoint, stack string, c aws.Config, keys map[string]functionurl.Key) (*LocalDoors, error) {
	l := &LocalDoors{}
	for name, address := range map[string]*string{"submit": &l.Submit, "read": &l.Read, "operate": &l.Operate} {
		listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, errors.Join(err, l.Close())
		}
		server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: &functionurl.URL{
			Region: c.Region, Keys: keys,
			Invoke: func(ctx context.Context, event []byte) ([]byte, error) {
				return Invoke(ctx, endpoint, stack+"-"+name, c, event)
			},
		}}
		l.servers = append(l.servers, server)
		*address = "http://" + listener.Addr().String()
		go func() { _ = server.Serve(listener) }() // It ends with Close.
	}
	return l, nil
}

// Close stops serving.
func (l *LocalDoors) Close() error {
	var err error
	for _, s := range l.servers {
		err = errors.Join(err, s.Close())
	}
	return err
}

// Invoke invokes a function through Lambda's API at an endpoint; AWS's client would be a dependency more.
func Invoke(ctx context.Context, endpoint, function string, c aws.Config, event []byte) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint+"/2015-03-31/functions/"+function+"/invocations", bytes.NewReader(event))
	if err != nil {
		return nil, err
	}
	credentials, err := c.Credentials.Retrieve(ctx)
	if err != nil {
		return nil, err
	}
	hash := sha256.Sum256(event)
	if err := v4.NewSigner().SignHTTP(ctx, credentials, r, hex.EncodeToString(hash[:]), "lambda", c.Region, time.Now()); err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, fmt.Errorf("invoke %s: %w", function, err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	switch {
	case err != nil:
		return nil, fmt.Errorf("invoke %s: %w", function, err)
	case answer.StatusCode == http.StatusTooManyRequests:
		return nil, functionurl.ErrThrottled
	case answer.StatusCode == http.StatusForbidden:
		return nil, fmt.Errorf("invoke %s: %w", function, ErrDenied)
	case answer.StatusCode != http.StatusOK || answer.Header.Get("X-Amz-Function-Error") != "":
		return nil, fmt.Errorf("invoke %s: %s: %.500s", function, answer.Status, body)
	}
	return body, nil
}
