// Package localstack writes template.yaml for stand-ins that know no loops, for a stack in LocalStack in Docker.
package localstack
