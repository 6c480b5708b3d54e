// Command travel is the makegood command of the agency.
package main

import (
	"github.com/makegood-dev/makegood/command"

	"example.com/travel"
)

func main() { command.Main(travel.Files, travel.Open().Agents()...) }
