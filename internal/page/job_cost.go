package page

import (
	"fmt"
	"math"
	"strconv"

	"github.com/makegood-dev/makegood"
)

// costData is the cost of a job: Dollars at list prices, and their parts.
type costData struct{ Dollars, Of string }

func costOf(s makegood.Spent) *costData {
	prices := makegood.ListPrices()
	return &costData{
		Dollars: fmt.Sprintf("%.6f", prices.Dollars(s)),
		Of: fmt.Sprintf("%s writes, %s reads, %s requests, %s invocations, %.3f GB s at prices of %s",
			units(s.WriteUnits), units(s.ReadUnits), units(s.Requests), units(s.Invocations), s.GBSeconds, prices.Region),
	}
}

// units writes a number of units with one digit behind the point, if that is not 0.
func units(n float64) string { return strconv.FormatFloat(math.Round(n*10)/10, 'f', -1, 64) }
