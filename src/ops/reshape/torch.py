SPELLED = {"reshape": "{0}.reshape({shape})"}
