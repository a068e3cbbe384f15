module store

go 1.26
