package iam

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// Judge stands before stand-ins. It refuses a request beyond its role as AWS does, remembers it, and passes others on.
type Judge struct {
	Policies *Policies
	// Upstream are the URLs of stand-ins by the service. What is allowed and has none is answered as if it had been done.
	Upstream map[string]string

	mu      sync.Mutex
	refused []string
	judged  map[string]int
}

// Refused are the requests that were refused, each with its role, in order.
func (j *Judge) Refused() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.refused)
}

// Judged is how many requests of each role were judged.
func (j *Judge) Judged() map[string]int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return maps.Clone(j.judged)
}

// ServeHTTP judges a request, and passes it on.
func (j *Judge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	role, service, err := signed(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}
	var body []byte
	if service != "s3" { // Of a payload nothing that is asked for stands in the body.
		if body, err = io.ReadAll(r.Body); err != nil {
			return // Whoever asked has gone.
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	if why := j.judge(role, service, r, body); why != "" {
		refuse(w, service, why)
		return
	}
	if j.Upstream[service] == "" {
		answer(w, service)
		return
	}
	j.pass(w, r, service)
}

// judge returns why a request is refused; empty: it is not.
func (j *Judge) judge(role, service string, r *http.Request, body []byte) (why string) {
	asks, err := j.Policies.Asks(service, r, body)
	if err != nil {
		why = role + ": " + err.Error()
	}
	for _, a := range asks {
		if !j.Policies.May(role, a) {
			why = role + " is not authorized to perform: " + a.String()
			break
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.judged == nil {
		j.judged = map[string]int{}
	}
	j.judged[role]++
	if why != "" {
		j.refused = append(j.refused, why)
	}
	return why
}

// pass passes a request on. A stand-in says where its queues are: they are here.
func (j *Judge) pass(w http.ResponseWriter, r *http.Request, service string) {
	target, err := url.Parse(j.Upstream[service])
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	here := "http://" + r.Host
	proxy := &httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) {
		p.SetURL(target)
		if p.In.URL.Query().Has("X-Amz-Signature") {
			signAgain(p.Out, j.Policies.Region)
		}
	}}
	if service == "sqs" && strings.HasSuffix(r.Header.Get("X-Amz-Target"), "QueueUrl") {
		proxy.ModifyResponse = func(answer *http.Response) error {
			text, err := io.ReadAll(answer.Body)
			text = bytes.ReplaceAll(text, []byte(strings.TrimSuffix(j.Upstream[service], "/")), []byte(here))
			answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
			answer.Header.Set("Content-Length", fmt.Sprint(len(text)))
			return err
		}
	}
	proxy.ServeHTTP(w, r)
}

// signAgain signs a presigned request with the key that stand-ins know: unlike other signatures, they check that.
func signAgain(r *http.Request, region string) {
	q, signed := r.URL.Query(), r.Clone(r.Context())
	signed.Header = http.Header{}
	for name := range strings.SplitSeq(q.Get("X-Amz-SignedHeaders"), ";") {
		if values := r.Header.Values(name); len(values) > 0 {
			signed.Header[http.CanonicalHeaderKey(name)] = values
		}
	}
	for _, name := range []string{"Algorithm", "Credential", "Date", "SignedHeaders", "Signature"} {
		q.Del("X-Amz-" + name)
	}
	signed.URL.RawQuery, signed.Host = q.Encode(), r.URL.Host
	address, _, err := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true }).PresignHTTP(
		r.Context(), aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, signed, "UNSIGNED-PAYLOAD", "s3", region, time.Now())
	if err != nil {
		return // The stand-in refuses it.
	}
	if again, err := url.Parse(address); err == nil {
		r.URL, r.Host = again, again.Host
	}
}

// refuse answers as a service answers whoever may not.
func refuse(w http.ResponseWriter, service, why string) {
	switch service {
	case "s3":
		w.WriteHeader(http.StatusForbidden)
		_, _ = fmt.Fprintf(w, "<Error><Code>AccessDenied</Code><Message>%s</Message></Error>", escaped(why))
	case "sns", "cloudformation":
		w.WriteHeader(http.StatusForbidden)
		_, _ = fmt.Fprintf(w, "<ErrorResponse><Error><Type>Sender</Type><Code>AuthorizationError</Code><Message>%s</Message></Error></ErrorResponse>", escaped(why))
	default:
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprintf(w, `{"__type":"com.amazonaws#AccessDeniedException","message":%q}`, why)
	}
}

// answer answers as if what was asked had been done.
func answer(w http.ResponseWriter, service string) {
	switch service {
	case "s3":
	case "sns":
		_, _ = io.WriteString(w, "<PublishResponse><PublishResult><MessageId>m</MessageId></PublishResult></PublishResponse>")
	case "ssm":
		_, _ = io.WriteString(w, `{"Parameter":{"Value":"value"}}`)
	default:
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		_, _ = io.WriteString(w, "{}")
	}
}

func escaped(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
}
