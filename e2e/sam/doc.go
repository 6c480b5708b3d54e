// Package sam holds the test behind make e2e: it builds and deploys template.yaml with the SAM CLI, to whatever
// AWS_ENDPOINT_URL answers for, and sends orders through the functions that run there.
package sam
