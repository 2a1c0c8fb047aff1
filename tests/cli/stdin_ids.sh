# Text from stdin has an id by its words, or the one of --id.
doppel_ids() {
    grep -o '^{"id":"[^"]*","isDuplicate":[a-z]*'
}
seq -s ' ' 1 60 | doppel add --index seen - | doppel_ids
seq -s ' ' 100 160 | doppel add --index seen - | doppel_ids
seq -s ' ' 200 260 | doppel add --index seen --id third - | doppel_ids
seq -s ' ' 1 60 | doppel check --index seen - | doppel_ids
seq -s ' ' 1 60 | doppel check --index seen --id asked - | doppel_ids
seq -s ' ' 300 360 >plain.txt
doppel add --index seen --id fourth plain.txt | doppel_ids
doppel stats --index seen | grep -o '"documents": *[0-9]*\|"copies": *[0-9]*' | paste -sd ' '
doppel add --index seen --id five plain.txt plain.txt
echo "exit $?"
doppel get --index seen five
echo "exit $?"
