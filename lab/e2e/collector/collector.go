// Package collector sees the trace of a job in a collector for OpenTelemetry: its test runs under the build tag
// collector.
package collector
