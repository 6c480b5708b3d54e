// Package outside holds tests of what stands outside this repository: a project as makegood new writes it, and a module
// written by hand in testdata/travel, each in a folder of its own with its own go.mod. They use the public packages alone.
package outside
