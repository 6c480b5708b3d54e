// Package docs holds the tests that compare what README and docs say with what the code does. It has
// no code of its own.
package docs
