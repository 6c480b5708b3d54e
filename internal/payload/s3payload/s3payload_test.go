package s3payload_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/makegood-dev/makegood"
	"github.com/makegood-dev/makegood/internal/payload"
	"github.com/makegood-dev/makegood/internal/payload/s3payload"
)

// storeOn is a Store whose bucket is a server of the test's. It tries nothing twice.
func storeOn(t *testing.T, answer http.HandlerFunc) *s3payload.Store {
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	client := s3.NewFromConfig(aws.Config{
		Region: "eu-central-1", BaseEndpoint: &server.URL, Retryer: func() aws.Retryer { return aws.NopRetryer{} },
		Credentials: credentials.NewStaticCredentialsProvider("AKIDEXAMPLE", "secret", "token"),
	})
	return s3payload.New(s3payload.Config{Client: client, Bucket: "bucket", Prefix: "stack"})
}

var ref = makegood.Payload{SHA256: strings.Repeat("ab", 32), Bytes: 10, By: "press"}

// No stand-in refuses anybody anything, so what S3 says when it does is said here.
func TestWhatAStoreRefusesWith(t *testing.T) {
	for _, c := range []struct {
		status int
		code   string
		want   error
	}{
		{http.StatusForbidden, "AccessDenied", payload.ErrDenied},
		{http.StatusForbidden, "InvalidAccessKeyId", payload.ErrDenied},
		{http.StatusForbidden, "RequestTimeTooSkewed", nil},
		{http.StatusBadRequest, "ExpiredToken", nil},
		{http.StatusNotFound, "NoSuchKey", payload.ErrNotFound},
		{http.StatusNotFound, "NoSuchBucket", nil},
		{http.StatusServiceUnavailable, "SlowDown", nil},
		{http.StatusInternalServerError, "InternalError", nil},
	} {
		s := storeOn(t, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(c.status)
			if r.Method != http.MethodHead {
				fmt.Fprintf(w, "<Error><Code>%s</Code><Message>why</Message></Error>", c.code)
			}
		})
		_, readErr := s.Open(t.Context(), "j", ref, 0, -1)
		_, writeErr := s.Write(t.Context(), payload.Place{Job: "j"}, strings.NewReader("x"))
		for what, err := range map[string]error{"open": readErr, "write": writeErr} {
			if err == nil {
				t.Errorf("%s, %s: got no error", what, c.code)
			}
			for _, word := range []error{payload.ErrDenied, payload.ErrNotFound, payload.ErrAltered, payload.ErrTooLarge} {
				if got := errors.Is(err, word); got != (word == c.want) {
					t.Errorf("%s, %s: got %v", what, c.code, err)
				}
			}
		}
	}
}

// The answer to a HEAD has no body, so no code: its status is all there is.
func TestWhatAStoreRefusesToShow(t *testing.T) {
	for status, want := range map[int]error{http.StatusForbidden: payload.ErrDenied, http.StatusNotFound: payload.ErrNotFound} {
		s := storeOn(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
		if err := s.Keep(t.Context(), "j", ref); !errors.Is(err, want) {
			t.Errorf("keep: got %v, want %v", err, want)
		}
		if _, err := s.ReadDoor(t.Context(), "j", ref); !errors.Is(err, want) {
			t.Errorf("a door: got %v, want %v", err, want)
		}
	}
}

// S3 keeps the hash of what it was told, and says it: a payload of another one is not what was written.
func TestAnotherHashInTheStoreIsSeenByKeep(t *testing.T) {
	checksum := "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
	s := storeOn(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Amz-Checksum-Mode") != "ENABLED" {
			t.Error("nobody asked for the hash")
		}
		w.Header().Set("X-Amz-Checksum-Sha256", checksum)
		w.Header().Set("Content-Length", "10")
	})
	if err := s.Keep(t.Context(), "j", ref); !errors.Is(err, payload.ErrAltered) {
		t.Errorf("got %v, want %v", err, payload.ErrAltered)
	}
	checksum = "q6urq6urq6urq6urq6urq6urq6urq6urq6urq6urq6s="
	if err := s.Keep(t.Context(), "j", ref); err != nil {
		t.Errorf("its own hash: %v", err)
	}
}

// Where the line breaks within a body, that is no end of it: it can be read again.
func TestABrokenLineIsNoEnd(t *testing.T) {
	s := storeOn(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "10")
		_, _ = w.Write([]byte("12345"))
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	r, err := s.Open(t.Context(), "j", ref, 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got, err := io.ReadAll(r); err == nil || errors.Is(err, payload.ErrAltered) {
		t.Errorf("got %d bytes, %v, want an error that is none of the payload", len(got), err)
	}
}

// Length and hash are under the signature as headers, so that none can be left out; and nothing prints a door's URL.
func TestADoorSignsWhatMustBeCarried(t *testing.T) {
	s := storeOn(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) })
	d, err := s.WriteDoor(t.Context(), payload.Place{Job: "j"}, payload.Written{SHA256: ref.SHA256, Bytes: 10})
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(d.URL)
	if err != nil {
		t.Fatal(err)
	}
	if got := u.Query().Get("X-Amz-SignedHeaders"); got != "content-length;host;x-amz-checksum-sha256" {
		t.Errorf("signed is %s", got)
	}
	if u.Query().Get("X-Amz-Expires") != "900" || d.Header.Get("Content-Length") != "10" || d.Header.Get("X-Amz-Checksum-Sha256") == "" {
		t.Errorf("got %v with %v", u.Query(), d.Header)
	}
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(format, d); strings.Contains(text, "Signature") {
			t.Errorf("%s prints %s", format, text)
		}
	}
}
