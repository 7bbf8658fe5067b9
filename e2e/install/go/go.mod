module example.com/first

go 1.24
