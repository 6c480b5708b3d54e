// Package sealed closes interfaces of public packages: only this module's types implement them, so a later release may
// add methods to them without breaking a user's program.
package sealed

// Interface is embedded by an interface that only this module implements.
type Interface interface{ sealed() }

// By is embedded by the types that implement such an interface.
type By struct{}

func (By) sealed() {}
