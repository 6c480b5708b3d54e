// Package template holds the rules of template.yaml as tests: who may do what, what must be encrypted, kept,
// bounded and watched, and that its names are those of the code. It has tests only, deploys nothing, and
// judges the source of the template with its loops expanded and its parameters resolved; what SAM makes of it
// is cfn-lint's, in make template-check.
package template
