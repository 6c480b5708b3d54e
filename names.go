package makegood

// HTTPAgent is the agent that is built in.
const HTTPAgent = "http"
