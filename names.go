package makegood

// HTTPAgent is the name of the built-in agent for HTTP.
const HTTPAgent = "http"
