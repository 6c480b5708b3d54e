// Package localstack holds tests of a deployed stack, under the build tag localstack. They know of no product:
// AWS_ENDPOINT_URL alone says where AWS's API is, and they print what answered. They prove nothing about AWS itself.
// docs/localstack.md says on what they were run.
package localstack
