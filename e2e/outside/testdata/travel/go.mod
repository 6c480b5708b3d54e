module example.com/travel

go 1.26.0

require github.com/makegood-dev/makegood v0.0.0

replace github.com/makegood-dev/makegood => ../../../..
