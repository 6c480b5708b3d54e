package otlp_test

import (
	"strings"
	"testing"

	"go.opentelemetry.io/otel/trace"

	"github.com/makegood-dev/makegood/internal/otlp"
)

// Where spans go, as OpenTelemetry says: an endpoint of one signal stands as it is, that of all gets the signal's path.
func TestWhereSpansGo(t *testing.T) {
	for name, c := range map[string]struct {
		set           map[string]string
		want, refused string
		header        string
	}{
		"nothing": {want: "http://localhost:4318/v1/traces"},
		"of all":  {set: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "https://otlp.example.com/"}, want: "https://otlp.example.com/v1/traces"},
		"of traces": {
			set:  map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "https://a.example.com", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://b.example.com/in"},
			want: "http://b.example.com/in",
		},
		"headers": {
			set:  map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "key=a%20b, x=1", "OTEL_EXPORTER_OTLP_TRACES_HEADERS": "x=2"},
			want: "http://localhost:4318/v1/traces", header: "a b 2",
		},
		"no URL":          {set: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "collector:4318"}, refused: "OTEL_EXPORTER_OTLP_ENDPOINT is"},
		"no URL of spans": {set: map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "/v1"}, refused: "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is"},
		"no headers":      {set: map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "secret"}, refused: "OTEL_EXPORTER_OTLP_HEADERS"},
		"a bad escape":    {set: map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "key=secret%zz"}, refused: "OTEL_EXPORTER_OTLP_HEADERS"},
	} {
		t.Run(name, func(t *testing.T) {
			for variable, value := range c.set {
				t.Setenv(variable, value)
			}
			got, err := otlp.SpansTo()
			if c.refused != "" {
				if err == nil || !strings.Contains(err.Error(), c.refused) || strings.Contains(err.Error(), "secret") {
					t.Errorf("got %v, want %s refused, and no header quoted", err, c.refused)
				}
				return
			}
			if header := strings.TrimSpace(got.Headers.Get("key") + " " + got.Headers.Get("x")); err != nil || got.URL != c.want || header != c.header {
				t.Errorf("got %s with %q, %v, want %s with %q", got.URL, header, err, c.want, c.header)
			}
		})
	}
}

// A share of the traces is kept by their ids alone, so everybody keeps the same.
func TestASamplerKeepsTheSameTracesEverywhere(t *testing.T) {
	low, high := trace.TraceID{8: 0x10, 15: 1}, trace.TraceID{8: 0xf0, 15: 1}
	for name, c := range map[string]struct {
		sampler, argument string
		low, high         bool
	}{
		"none":        {"", "", true, true},
		"on":          {"always_on", "", true, true},
		"off":         {"parentbased_always_off", "", false, false},
		"half":        {"parentbased_traceidratio", "0.5", true, false},
		"all":         {"traceidratio", "", true, true},
		"of no trace": {"traceidratio", "0", false, false},
	} {
		t.Setenv("OTEL_TRACES_SAMPLER", c.sampler)
		t.Setenv("OTEL_TRACES_SAMPLER_ARG", c.argument)
		sampled, err := otlp.Sampling()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if sampled(low) != c.low || sampled(high) != c.high {
			t.Errorf("%s: got %t and %t, want %t and %t", name, sampled(low), sampled(high), c.low, c.high)
		}
	}
	for _, argument := range []string{"2", "-1", "half"} {
		t.Setenv("OTEL_TRACES_SAMPLER", "traceidratio")
		t.Setenv("OTEL_TRACES_SAMPLER_ARG", argument)
		if _, err := otlp.Sampling(); err == nil {
			t.Errorf("a share of %s: got no error", argument)
		}
	}
}
