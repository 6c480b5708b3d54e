// Package outside holds tests of what stands outside this repository: a project as makegood new writes it, and the
// example travel as a module of its own. They stand in folders of their own, each with its own go.mod, and use the
// public packages alone.
package outside
