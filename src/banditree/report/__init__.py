"""Show results: a result describes itself once as a document, which becomes text, HTML, a notebook's cell or JSON.

`result.Result` is the base of every result, `document` has the parts of a document, `text` and `html` render it,
`words` formats numbers, and `intervals` computes 95% intervals.
"""
