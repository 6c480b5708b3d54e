package deployed

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/makegood-dev/makegood/internal/limits"
	"github.com/makegood-dev/makegood/internal/payload"
	"github.com/makegood-dev/makegood/internal/payload/s3payload"
)

const (
	// answerTimeout is how long S3 may take to begin its answer: it hashes copied objects. The time for a body is bounded
	// by the invocation, or by the attempt.
	answerTimeout = 30 * time.Second
	day           = 24 * time.Hour
	// expiry is how long a job may still be there after its retention: DynamoDB takes its time, and so does the lifecycle.
	expiry = 3 * day
	// renewal is the longest time between two renewals of the payloads of an open job: half may pass before a renewal is
	// due, the other half is for the audit to come round.
	renewal = 14 * day
)

// large is where a stack keeps large payloads; the zero value: nowhere.
type large struct {
	bucket, prefix string
	// days is after how many days the bucket deletes objects, renew the age at which they are renewed; zero: never.
	days  int
	renew time.Duration
}

// longest is how long an object that is kept once must stay: on its way to a job, or in a job that has ended.
func longest(retention time.Duration) time.Duration {
	return max(limits.KeepPayload, retention+expiry)
}

// payloads reads where large payloads are, of a stack that keeps jobs so long.
func (e *environment) payloads(retention time.Duration) large {
	at, days := e.getenv(VarPayloads), e.number(VarPayloadDays, 0, maxPayloadDays)
	if at == "" {
		return large{}
	}
	l := e.bucket(at)
	if l.days = days; days == 0 {
		return l
	}
	if why := TooFewPayloadDays(days, int(retention/day)); why != "" {
		e.refuse(VarPayloadDays, "is %d, %s (%s)", days, why, VarRetention)
	}
	l.renew = (time.Duration(days)*day - longest(retention)) / 2
	return l
}

// TooFewPayloadDays says why a bucket may not delete payloads after so many days, if the stack keeps ended jobs for
// retention days; empty: it may. Zero days: it never deletes, and jobs are kept for ever.
func TooFewPayloadDays(days, retention int) string {
	least := int((longest(time.Duration(retention)*day) + renewal) / day)
	switch {
	case days == 0:
		return ""
	case retention == 0:
		return "and jobs are kept for ever: 0 keeps their payloads as long"
	case days < least:
		return fmt.Sprintf("want %d at least: a job is kept for %d days after its end", least, retention)
	}
	return ""
}

// bucket reads BUCKET/STACK.
func (e *environment) bucket(at string) large {
	bucket, prefix, _ := strings.Cut(at, "/")
	if bucket == "" || prefix == "" || strings.Contains(prefix, "/") {
		e.refuse(VarPayloads, "is %q, want BUCKET/STACK", at)
	}
	return large{bucket: bucket, prefix: prefix}
}

// outsidePayloads says where an agent outside of Lambda writes and reads: it renews no payloads. A dash is the output
// of a stack without a bucket.
func (e *environment) outsidePayloads(at string) large {
	if at == "" || at == "-" {
		return large{}
	}
	return e.bucket(at)
}

// open makes the store; nil: there is none.
func (l large) open(c aws.Config) *s3payload.Store {
	if l.bucket == "" {
		return nil
	}
	c.HTTPClient = awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) { t.ResponseHeaderTimeout = answerTimeout })
	client := s3.NewFromConfig(c, func(o *s3.Options) {
		// A stand-in for S3 has one host name, and not one for each bucket.
		o.UsePathStyle = o.BaseEndpoint != nil
	})
	return s3payload.New(s3payload.Config{Client: client, Bucket: l.bucket, Prefix: l.prefix, Days: l.days, Renew: l.renew})
}

// large is the payload store of a stack; nil: there is none.
func (s *stack) large() payload.Store {
	if l := s.payloads.open(s.aws); l != nil {
		return l
	}
	return nil
}

// doors are those to the store of a stack; nil: there is none.
func (s *stack) doors() payload.Doors {
	if l := s.payloads.open(s.aws); l != nil {
		return l
	}
	return nil
}
