//go:build linux

package lambdahost

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
)

// traceHeader is where the AWS SDK of a function in Lambda puts the header of the invocation.
const traceHeader = "X-Amzn-Trace-Id"

// Tracing returns the address of a proxy before a stand-in for SQS, until Close. SQS keeps the X-Ray header of a
// request that sends messages as their system attribute AWSTraceHeader, which the stand-ins do only with an
// attribute that stands in the request: the proxy writes it there.
func (h *Host) Tracing(endpoint string) (string, error) {
	target, err := url.Parse(endpoint)
	if err != nil {
		return "", fmt.Errorf("address of the stand-in: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("listen for SQS: %w", err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		keepTrace(r.Out)
	}}
	server := &http.Server{Handler: proxy, ReadHeaderTimeout: initLimit}
	h.mu.Lock()
	h.proxies = append(h.proxies, server)
	h.mu.Unlock()
	go func() { _ = server.Serve(listener) }() // It ends with Close.
	return "http://" + listener.Addr().String(), nil
}

// keepTrace makes the header of a request that sends messages an attribute of each of them.
func keepTrace(r *http.Request) {
	// The SDK percent-encodes the bars of a lineage.
	trace, err := url.PathUnescape(r.Header.Get(traceHeader))
	if err != nil || trace == "" || !strings.Contains(r.Header.Get("X-Amz-Target"), ".SendMessage") {
		return
	}
	body, err := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	var request map[string]any
	if err != nil || json.Unmarshal(body, &request) != nil {
		return // The stand-in says what is wrong with it.
	}
	attribute := map[string]any{"AWSTraceHeader": map[string]string{"DataType": "String", "StringValue": trace}}
	entries, batch := request["Entries"].([]any)
	if !batch {
		entries = []any{request}
	}
	for _, e := range entries {
		if entry, ok := e.(map[string]any); ok {
			entry["MessageSystemAttributes"] = attribute
		}
	}
	if body, err = json.Marshal(request); err == nil {
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
}
