package otlp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Wanted reports whether the variables ask for a signal, TRACES or METRICS, over OTLP. An endpoint asks for it, or an
// exporter that is named otlp.
func Wanted(signal string) (bool, error) {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") {
		return false, nil
	}
	exporter := os.Getenv("OTEL_" + signal + "_EXPORTER")
	endpoint := os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") + os.Getenv("OTEL_EXPORTER_OTLP_"+signal+"_ENDPOINT")
	switch {
	case exporter == "none", exporter == "prometheus" && signal == "METRICS", exporter == "" && endpoint == "":
		return false, nil
	case exporter != "" && exporter != "otlp":
		return false, fmt.Errorf("OTEL_%s_EXPORTER is %q: want otlp or none", signal, exporter)
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_" + signal + "_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		if protocol := os.Getenv(name); protocol != "" && protocol != "http/protobuf" {
			return false, fmt.Errorf("%s is %q: want http/protobuf", name, protocol)
		}
	}
	return true, nil
}

// Sampling returns the decision of the configured sampler about an undecided trace: the same for the same id. A
// provider of the SDK reads the same variables.
func Sampling() (func(trace.TraceID) bool, error) {
	name, argument := os.Getenv("OTEL_TRACES_SAMPLER"), os.Getenv("OTEL_TRACES_SAMPLER_ARG")
	switch strings.TrimPrefix(name, "parentbased_") {
	case "", "always_on":
		return func(trace.TraceID) bool { return true }, nil
	case "always_off":
		return func(trace.TraceID) bool { return false }, nil
	case "traceidratio":
		share, err := strconv.ParseFloat(argument, 64)
		if argument == "" {
			share, err = 1, nil
		}
		if err != nil || share < 0 || share > 1 {
			return nil, fmt.Errorf("OTEL_TRACES_SAMPLER_ARG is %q: want a share from 0 to 1", argument)
		}
		sampler := sdktrace.TraceIDRatioBased(share)
		return func(id trace.TraceID) bool {
			return sampler.ShouldSample(sdktrace.SamplingParameters{ParentContext: context.Background(), TraceID: id}).Decision == sdktrace.RecordAndSample
		}, nil
	default:
		return nil, fmt.Errorf("OTEL_TRACES_SAMPLER is %q: want always_on, always_off or traceidratio, or parentbased_ and one of these", name)
	}
}

// Describe returns the attributes of the sending process; the variables override them.
func Describe(ctx context.Context, known ...attribute.KeyValue) (*resource.Resource, error) {
	r, err := resource.New(ctx, resource.WithAttributes(known...), resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	return r, nil
}

// Destination is where spans are posted to.
type Destination struct {
	URL     string
	Headers http.Header
}

// SpansTo returns the place where the variables have spans posted to: OTEL_EXPORTER_OTLP_TRACES_ENDPOINT as it stands,
// or v1/traces below OTEL_EXPORTER_OTLP_ENDPOINT; default: a collector on this machine. No error quotes a header: it
// may hold a key.
func SpansTo() (Destination, error) {
	d := Destination{URL: "http://localhost:4318/v1/traces", Headers: http.Header{}}
	name := "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	if base := os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT"); base != "" {
		d.URL = strings.TrimSuffix(base, "/") + "/v1/traces"
	}
	if whole := os.Getenv(name); whole != "" {
		d.URL = whole
	} else {
		name = "OTEL_EXPORTER_OTLP_ENDPOINT"
	}
	if at, err := url.Parse(d.URL); err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" {
		return d, fmt.Errorf("%s is %.200q: want a URL of http or https", name, os.Getenv(name))
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"} {
		if err := readHeaders(d.Headers, os.Getenv(name)); err != nil {
			return d, fmt.Errorf("%s: %w", name, err)
		}
	}
	return d, nil
}

// readHeaders reads a=1,b=2, values escaped as in a URL.
func readHeaders(into http.Header, text string) error {
	for pair := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		key, value, is := strings.Cut(pair, "=")
		plain, err := url.PathUnescape(strings.TrimSpace(value))
		if key = strings.TrimSpace(key); !is || key == "" || err != nil {
			return errors.New("want NAME=VALUE with commas between, values escaped as in a URL")
		}
		into.Set(key, plain)
	}
	return nil
}
