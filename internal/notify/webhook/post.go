package webhook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// maxAnswerBytes is how much of an answer is read, so that its connection can be used again.
const maxAnswerBytes = 64 << 10

// errNotAnAddress does not quote the text: an unreadable text may be a secret in the wrong place, and net/url quotes
// it.
var errNotAnAddress = errors.New("the URL cannot be read: want http or https, and a host")

// Post posts JSON to an address and wants an answer of 2xx; ctx bounds its time. The address is an operator's, and
// its path, query or user are often its key, as with chat services: errors name only scheme and host.
func Post(ctx context.Context, address, body string) error {
	target, err := parse(address)
	if err != nil {
		return err
	}
	if err := post(ctx, target, body); err != nil {
		return fmt.Errorf("%s://%s: %w", target.Scheme, target.Host, err)
	}
	return nil
}

// IsAddress reports whether Post can post to it.
func IsAddress(address string) bool {
	_, err := parse(address)
	return err == nil
}

func parse(address string) (*url.URL, error) {
	target, err := url.Parse(address)
	if err != nil || target.Host == "" || target.Scheme != "http" && target.Scheme != "https" {
		return nil, errNotAnAddress
	}
	return target, nil
}

// post uses the transport, not a client: a client would follow a redirect to an address that the operator did not
// choose, and puts addresses into its errors.
func post(ctx context.Context, target *url.URL, body string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "", strings.NewReader(body))
	if err != nil {
		return err
	}
	request.URL, request.Host = target, target.Host
	request.Header.Set("Content-Type", "application/json")
	if user := target.User; user != nil {
		password, _ := user.Password()
		request.SetBasicAuth(user.Username(), password)
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, _ = io.CopyN(io.Discard, response.Body, maxAnswerBytes) // The body does not matter.
	if response.StatusCode < 200 || response.StatusCode > 299 {
		// In our words: the remote's may quote the request.
		return fmt.Errorf("the answer is %d %s, want 2xx", response.StatusCode, http.StatusText(response.StatusCode))
	}
	return nil
}
