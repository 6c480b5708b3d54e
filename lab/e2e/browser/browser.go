// Package browser holds the page to what a person has of it: its tests, under the build tag browser, drive Chromium
// through the views of a makegood dev that runs as a process, with agents that work, fail and are slow as the test
// says. Whatever a test does, it fails where the console has an error, where the content security policy was broken, or
// where a request was refused that nobody had expected to be.
package browser
