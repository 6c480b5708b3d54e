// Package scale plays a stack on AWS at a scale that no machine here has. It counts the partitions into which the
// shipped store writes, and the jobs that the shipped Supervisor tells of in a minute of virtual time with
// an assumed time for each request; and it reckons which part of a stack is full first. docs/scale.md shows its tables,
// and make scale prints them.
package scale
